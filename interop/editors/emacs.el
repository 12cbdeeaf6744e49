;;; emacs.el --- Emacs runs the snippet of docs/editors.md, then talks to the command that it sets -*- lexical-binding: t -*-

;; Usage: GANDER_WORK=folder GANDER_DOCS=docs/editors.md emacs --batch -Q -l emacs.el

(require 'json)
(require 'cl-lib)

(defvar agent-shell-goose-acp-command nil)
(defvar agent-shell-goose-authentication nil)

(defun snippet ()
  "The elisp of the section on Emacs."
  (with-temp-buffer
    (insert-file-contents (getenv "GANDER_DOCS"))
    (re-search-forward "^## Emacs$")
    (let ((start (progn (re-search-forward "^```elisp\n") (point))))
      (re-search-forward "^```$")
      (buffer-substring start (match-beginning 0)))))

(defun run-snippet ()
  "Evaluates the snippet beside a stand-in for agent-shell, which no package of Debian holds."
  (provide 'agent-shell)
  (cl-flet ((none (&rest options) (unless (plist-get options :none) (error "Logs in")) 'none))
    (fset 'agent-shell-make-goose-authentication #'none)
    (with-temp-buffer
      (insert (snippet))
      (eval-buffer)))
  (unless (equal agent-shell-goose-acp-command '("gander" "acp"))
    (error "Another command: %S" agent-shell-goose-acp-command)))

(defvar answers (make-hash-table))
(defvar said "")
(defvar asked nil)
(defvar rest "")
(defvar agent nil)

(defun send (message)
  (process-send-string agent (concat (json-serialize `(:jsonrpc "2.0" ,@message)) "\n")))

(defun handle (message)
  (let ((method (alist-get 'method message)) (id (alist-get 'id message)))
    (cond ((equal method "session/update")
           (let ((update (alist-get 'update (alist-get 'params message))))
             (when (equal (alist-get 'sessionUpdate update) "agent_message_chunk")
               (setq said (concat said (alist-get 'text (alist-get 'content update)))))))
          ((equal method "session/request_permission")
           (setq asked message)
           (send `(:id ,id :result (:outcome (:outcome "selected" :optionId "allow_once")))))
          (id (puthash id message answers)))))

(defun receive (_process output)
  (setq rest (concat rest output))
  (while (string-match "\n" rest)
    (let ((line (substring rest 0 (match-beginning 0))))
      (setq rest (substring rest (match-end 0)))
      (handle (json-parse-string line :object-type 'alist :array-type 'list)))))

(defun call (id method params)
  (send `(:id ,id :method ,method :params ,params))
  (let ((end (+ (float-time) 30)))
    (while (and (not (gethash id answers)) (< (float-time) end))
      (accept-process-output agent 0.1)))
  (or (alist-get 'result (gethash id answers)) (error "No result of %s: %S" method (gethash id answers))))

(defun turn ()
  (let ((default-directory (file-name-as-directory (getenv "GANDER_WORK"))))
    (setq agent (make-process :name "gander" :command agent-shell-goose-acp-command :connection-type 'pipe
                              :coding 'utf-8-unix :noquery t :filter #'receive)))
  (call 1 "initialize" '(:protocolVersion 1 :clientCapabilities (:fs (:readTextFile :false :writeTextFile :false))))
  (let* ((session (alist-get 'sessionId (call 2 "session/new" `(:cwd ,(getenv "GANDER_WORK") :mcpServers []))))
         (script "[[script:[[{\"tool\":\"write\",\"args\":{\"path\":\"from-emacs.txt\",\"content\":\"hi\"}}],[{\"text\":\"All done.\"}]]]]")
         (prompt `[(:type "text" :text ,script)])
         (ended (call 3 "session/prompt" `(:sessionId ,session :prompt ,prompt))))
    (delete-process agent)
    (unless (equal (alist-get 'stopReason ended) "end_turn") (error "Ended otherwise: %S" ended))
    (unless (equal said "All done.") (error "Said otherwise: %s" said))
    (unless asked (error "Nobody was asked"))))

(dolist (case '(("emacs_snippet" . run-snippet) ("emacs_turn" . turn)))
  (condition-case problem
      (progn (funcall (cdr case)) (princ (format "pass %s\n" (car case))))
    (error (princ (format "fail %s %s\n" (car case)
                          (replace-regexp-in-string "\n" " " (error-message-string problem)))))))
;;; emacs.el ends here
